// SPDX-License-Identifier: BSL-1.0

// What the operator sees of the backlog: a bar for each hour, drawn by a script that asks again
// every two seconds.

#include "pages.hpp"

namespace signup {

namespace {

constexpr std::string_view script = R"js("use strict";
const ns = "http://www.w3.org/2000/svg";
const chart = document.getElementById("chart"), said = document.getElementById("said");
const width = 960, height = 320, left = 44, bottom = 44, above = 16;

function add(kind, attributes, text) {
    const made = document.createElementNS(ns, kind);
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    if (text !== undefined) made.textContent = text;
    chart.append(made);
    return made;
}
const clock = hour => new Date(hour * 3600e3).toISOString();

/* From some hours ago to the last hour with anything in it, a day at least. */
function hoursOf(b) {
    const now = Math.floor(b.now / 3600e3), of = new Map(b.hours.map(h => [h.hour, h]));
    const last = Math.max(now + 18, ...b.hours.map(h => h.hour)), all = [];
    for (let hour = now - 6; hour <= Math.min(last, now + 120); ++hour)
        all.push(of.get(hour) || {hour, queued: 0, sent: 0});
    return all;
}

function draw(b) {
    const hours = hoursOf(b), step = (width - left) / hours.length;
    const most = Math.max(b.per_hour, ...hours.map(h => h.queued + h.sent));
    const y = n => height - bottom - n / most * (height - bottom - above);
    chart.replaceChildren();
    add("line", {class: "axis", x1: left, x2: width, y1: y(0), y2: y(0)});
    const every = Math.ceil(hours.length / 16);
    hours.forEach((h, i) => {
        const x = left + i * step + step * .1, wide = step * .8, time = clock(h.hour);
        const bar = (kind, from, n) => {
            if (n === 0) return;
            const made = add("rect", {class: kind, x, width: wide, y: y(from + n),
                                      height: y(from) - y(from + n), "data-hour": h.hour,
                                      "data-count": n});
            const title = document.createElementNS(ns, "title");
            title.textContent = `${time.slice(0, 13)}:00 UTC: ${n} ${kind}`;
            made.append(title);
        };
        bar("sent", 0, h.sent);
        bar("queued", h.sent, h.queued);
        if (i % every === 0) {
            add("text", {x, y: height - bottom + 16}, time.slice(11, 13));
            if (i === 0 || time.slice(11, 13) < every.toString().padStart(2, "0"))
                add("text", {x, y: height - bottom + 32}, time.slice(5, 10));
        }
    });
    add("line", {class: "cap", x1: left, x2: width, y1: y(b.per_hour), y2: y(b.per_hour)});
    add("text", {x: 4, y: y(b.per_hour) + 4}, b.per_hour);
    add("text", {x: 4, y: y(0) + 4}, 0);
    const last = b.last_due && new Date(b.last_due).toISOString().slice(0, 16).replace("T", " ");
    const until = last ? `, the last at ${last} UTC` : "";
    said.textContent = `${b.waiting} waiting${until}; ${b.late} late, ${b.perhaps_twice} perhaps ` +
        `sent twice, ${b.given_up} given up. Caps: ${b.per_hour} an hour, ${b.per_day} a day.`;
    chart.setAttribute("aria-label", said.textContent);
}

async function look() {
    try {
        const answer = await fetch("/operator/backlog", {cache: "no-store"});
        if (!answer.ok) throw new Error(answer.status);
        draw(await answer.json());
    } catch (failed) {
        said.textContent = `No answer (${failed.message}); what you see may be old.`;
    }
    setTimeout(look, 2000);
}
look();
)js";

std::string field(std::string_view name, std::int64_t number)
{
    return ",\"" + std::string(name) + "\":" + std::to_string(number);
}

std::int64_t milliseconds(weir::instant at)
{
    return std::chrono::floor<std::chrono::milliseconds>(at.time_since_epoch()).count();
}

}  // namespace

std::string_view operator_script() noexcept { return script; }

std::string operator_page()
{
    return R"(<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="stylesheet" href="/style.css"><link rel="icon" href="data:,">
<title>Backlog</title></head><body><main class="wide">
<h1>Backlog</h1>
<p class="key"><span class="sent"></span>sent<span class="queued"></span>queued<span
class="dash"></span>cap of an hour (UTC)</p>
<svg id="chart" viewBox="0 0 960 320" role="img"></svg>
<p id="said" role="status">Without JavaScript see <a href="/operator/backlog">the figures</a>.</p>
<script src="/operator.js"></script>
</main></body></html>
)";
}

std::string write_backlog(const backlog& of, const weir::calendar_caps& caps)
{
    std::string json = "{\"now\":" + std::to_string(milliseconds(of.at));
    json += field("per_hour", caps.per_hour) + field("per_day", caps.per_day);
    json += field("waiting", static_cast<std::int64_t>(of.waiting));
    json += field("late", static_cast<std::int64_t>(of.late));
    json += field("perhaps_twice", static_cast<std::int64_t>(of.perhaps_twice));
    json += field("given_up", static_cast<std::int64_t>(of.given_up));
    if (of.last_due) json += field("last_due", milliseconds(*of.last_due));
    json += ",\"hours\":[";
    for (const auto& each : of.hours) {
        json += json.ends_with('[') ? "" : ",";
        json += "{\"hour\":" + std::to_string(each.hour);
        json += field("queued", static_cast<std::int64_t>(each.queued));
        json += field("sent", static_cast<std::int64_t>(each.sent)) + '}';
    }
    return json + "]}";
}

}  // namespace signup
