-- Last, so that a version tells that all of it is there.
INSERT INTO weir.meta (name, value) VALUES ('version', '1') ON CONFLICT (name) DO NOTHING;
COMMIT;
