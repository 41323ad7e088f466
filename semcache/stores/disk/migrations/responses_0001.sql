-- Texts under keys, in the order of their use. `used` is the number of the last use, `used_s` its
-- epoch seconds; `sealed` a line with the SHA-256 of the rest, then the key and the text.

CREATE TABLE responses (
    key     TEXT PRIMARY KEY,
    "group" TEXT NOT NULL,
    used    INTEGER NOT NULL,
    used_s  REAL NOT NULL,
    ttl_s   REAL,
    bytes   INTEGER NOT NULL,
    sealed  TEXT NOT NULL
);
CREATE INDEX responses_used ON responses (used);

-- What they come to, so that nobody counts them.
CREATE TABLE room (
    entries INTEGER NOT NULL DEFAULT 0,
    bytes   INTEGER NOT NULL DEFAULT 0
);
INSERT INTO room DEFAULT VALUES;
CREATE TRIGGER responses_added AFTER INSERT ON responses BEGIN
    UPDATE room SET entries = entries + 1, bytes = bytes + NEW.bytes;
END;
CREATE TRIGGER responses_removed AFTER DELETE ON responses BEGIN
    UPDATE room SET entries = entries - 1, bytes = bytes - OLD.bytes;
END;
