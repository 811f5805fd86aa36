// SPDX-License-Identifier: BSL-1.0

// SITE=… TOKEN=… node --test pages.mjs: what a person, a screen reader and an operator meet.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { setTimeout as wait } from "node:timers/promises";
import { chromium } from "playwright-core";

const { SITE, TOKEN } = process.env;
const old_enough = 1200;  // a second is the youngest form that the server takes here

let browser;
before(async () => {
    browser = await chromium.launch({
        executablePath: "/usr/bin/chromium",
        args: ["--no-sandbox", "--headless", "--disable-gpu", "--disable-quic", "--no-first-run",
            "--disable-background-networking", "--disable-component-update", "--disable-sync"],
    });
});
after(() => browser?.close());

async function open(path, options = {}) {
    const context = await browser.newContext({ baseURL: SITE, colorScheme: "light", ...options });
    const page = await context.newPage();
    const got = await page.goto(path);
    assert.equal(got.status(), 200);
    return page;
}

const trap = page => page.locator("[inert] input");
const focused = page => page.evaluate(() => {
    const { name, tagName } = document.activeElement;
    return name || tagName;
});

async function apply(address) {
    const page = await open("/");
    await page.getByLabel("E-mail address").fill(address);
    await page.getByLabel("Name").fill("A guest");
    await wait(old_enough);
    await page.getByRole("button", { name: "Send" }).click();
    assert.equal(new URL(page.url()).pathname, "/received");
    await page.context().close();
}

test("a person fills the form in by keyboard, without scripts, and is thanked", async () => {
    const page = await open("/", { javaScriptEnabled: false });
    const keys = page.keyboard;
    for (const words of ["person@x.test", "A person", "Read,\nand write."]) {
        await keys.press("Tab");
        await keys.type(words);
    }
    await wait(old_enough);
    await keys.press("Tab");
    await Promise.all([page.waitForURL("**/received"), keys.press("Enter")]);
    assert.ok(await page.getByRole("heading", { name: "Thank you" }).isVisible());
    await page.context().close();
});

test("the trap is not seen: the page looks the same without it", async () => {
    const page = await open("/");
    const box = await trap(page).boundingBox();
    assert.ok(box.x + box.width < 0, `it is at ${JSON.stringify(box)}`);
    assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth));
    const withIt = await page.screenshot({ fullPage: true });
    await page.evaluate(() => document.querySelector("[inert]").remove());
    assert.ok(withIt.equals(await page.screenshot({ fullPage: true })));
    await page.context().close();
});

test("the trap takes no focus, by Tab or by script", async () => {
    const page = await open("/");
    const seen = [];
    for (let n = 0; n < 6; ++n) {
        await page.keyboard.press("Tab");
        seen.push(await focused(page));
    }
    assert.deepEqual(seen.slice(0, 4), ["email", "name", "about", "BUTTON"]);
    const name = await trap(page).getAttribute("name");
    assert.ok(!seen.includes(name));
    await page.evaluate(() => document.querySelector("[inert] input").focus());
    assert.notEqual(await focused(page), name);
    await page.context().close();
});

test("the trap is not announced: it has no place in the accessibility tree", async () => {
    const page = await open("/");
    const session = await page.context().newCDPSession(page);
    const { nodes } = await session.send("Accessibility.getFullAXTree");
    const announced = nodes.filter(node => !node.ignored && node.role?.value === "textbox");
    assert.deepEqual(announced.map(node => node.name.value),
        ["E-mail address", "Name", "What would you like to do here?"]);
    assert.ok(!nodes.some(node => !node.ignored && /empty/i.test(node.name?.value ?? "")));
    await page.context().close();
});

test("a form that comes back has every value, and passes once it is right", async () => {
    const page = await open("/");
    const wrote = {
        email: "person at x", name: "O'Neil <b>", about: "\nfirst\n\n  \"second\" & more",
    };
    for (const [name, words] of Object.entries(wrote))
        await page.locator(`[name=${name}]`).fill(words);
    const token = await page.locator("[name=form_token]").inputValue();
    await wait(old_enough);
    const [answer] = await Promise.all([
        page.waitForResponse(got => got.request().method() === "POST"),
        page.getByRole("button", { name: "Send" }).click()]);
    assert.equal(answer.status(), 400);
    await page.locator("[role=alert]").waitFor();
    for (const [name, words] of Object.entries(wrote))
        assert.equal(await page.locator(`[name=${name}]`).inputValue(), words);
    assert.notEqual(await page.locator("[name=form_token]").inputValue(), token);
    const field = page.getByLabel("E-mail address");
    const told = page.locator(`#${await field.getAttribute("aria-describedby")}`);
    assert.ok((await told.boundingBox()).height > 10);
    assert.equal(await field.getAttribute("aria-invalid"), "true");

    await field.fill("returned@x.test");
    await wait(old_enough);
    await page.getByRole("button", { name: "Send" }).click();
    assert.equal(new URL(page.url()).pathname, "/received");
    await page.context().close();
});

/** How many pixels of a picture are of this colour, and the first and last row with one. */
async function coloured(picture, colour) {
    const page = await browser.newPage();
    const found = await page.evaluate(async ([base64, [r, g, b]]) => {
        const image = new Image();
        image.src = "data:image/png;base64," + base64;
        await image.decode();
        const canvas = new OffscreenCanvas(image.width, image.height);
        const context = canvas.getContext("2d");
        context.drawImage(image, 0, 0);
        const { data } = context.getImageData(0, 0, image.width, image.height);
        let count = 0, first = -1, last = -1;
        for (let i = 0; i < data.length; i += 4) {
            const away = Math.abs(data[i] - r) + Math.abs(data[i + 1] - g) +
                Math.abs(data[i + 2] - b);
            if (away > 12) continue;
            ++count;
            last = Math.floor(i / 4 / image.width);
            if (first < 0) first = last;
        }
        return { count, first, last };
    }, [picture.toString("base64"), colour]);
    await page.close();
    return found;
}

const sent = [0x1f, 0x6f, 0x5c], queued = [0xd0, 0x8a, 0x1d], cap = [0xb3, 0x26, 0x1e];

test("the operator's page draws what was sent and what waits, and follows by itself", async () => {
    // Seven in all, four an hour: three wait.
    for (let n = 0; n < 5; ++n) await apply(`more${n}@x.test`);
    const page = await open("/operator", { httpCredentials: { username: "me", password: TOKEN } });
    const bars = kind => page.locator(`rect.${kind}`).evaluateAll(all => all.map(bar => {
        const { x, y, width, height, bottom } = bar.getBoundingClientRect();
        return { x, y, width, height, bottom, count: Number(bar.dataset.count) };
    }));
    const total = async kind => (await bars(kind)).reduce((sum, bar) => sum + bar.count, 0);
    await page.waitForFunction(() => [...document.querySelectorAll("rect.sent")]
        .reduce((sum, bar) => sum + Number(bar.dataset.count), 0) === 4, null, { timeout: 20000 });
    assert.equal(await total("queued"), 3);

    const all = [...await bars("sent"), ...await bars("queued")];
    const unit = all[0].height / all[0].count;
    for (const bar of all) {
        assert.ok(bar.width > 5 && bar.height > 20, JSON.stringify(bar));
        assert.ok(Math.abs(bar.height - unit * bar.count) < 1, "heights are as the counts");
    }
    const line = await page.locator("line.cap").boundingBox();
    const ground = await page.locator("line.axis").boundingBox();
    assert.ok(Math.abs(ground.y - line.y - unit * 4) < 2, "the cap is drawn at four");

    const picture = await page.locator("#chart").screenshot();
    for (const [kind, colour] of [["sent", sent], ["queued", queued]]) {
        const area = (await bars(kind)).reduce((sum, bar) => sum + bar.width * bar.height, 0);
        const { count } = await coloured(picture, colour);
        assert.ok(count > area * .8 && count < area * 1.2, `${kind}: ${count} pixels of ${area}`);
    }
    const dashes = await coloured(picture, cap);
    assert.ok(dashes.count > 300 && dashes.last - dashes.first <= 4, JSON.stringify(dashes));

    await page.evaluate(() => { window.notLoadedAgain = true; });
    await apply("one.more@x.test");
    await page.waitForFunction(() => [...document.querySelectorAll("rect.queued")]
        .reduce((sum, bar) => sum + Number(bar.dataset.count), 0) === 4, null, { timeout: 10000 });
    assert.ok(await page.evaluate(() => window.notLoadedAgain));
    assert.match(await page.locator("#said").textContent(), /^4 waiting, the last at /);
    await page.context().close();
});

test("without the operator's password there is no backlog to see", async () => {
    const page = await (await browser.newContext({ baseURL: SITE })).newPage();
    for (const path of ["/operator", "/operator/backlog"])
        assert.equal((await page.request.get(path)).status(), 401);
    await page.context().close();
});
