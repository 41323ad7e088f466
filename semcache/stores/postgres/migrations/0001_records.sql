-- Records with the ways in to them, notes, leases, and the numbered log of changes.
-- A tenant is a hard partition: it leads every key.

CREATE TABLE state (
    single      boolean PRIMARY KEY DEFAULT true CHECK (single),
    last_change bigint NOT NULL DEFAULT 0,
    forgotten   bigint NOT NULL DEFAULT 0
);
COMMENT ON TABLE state IS 'One row. Every change locks it, takes the next number and commits with it.';
INSERT INTO state DEFAULT VALUES;

CREATE TABLE records (
    tenant    text NOT NULL,
    id        text NOT NULL,
    change    bigint NOT NULL,
    keys      text[] NOT NULL,
    labels    text[] NOT NULL,
    body      text NOT NULL,
    embedder  text NOT NULL,
    created_s double precision NOT NULL,
    expires_s double precision,
    cost_s    double precision NOT NULL,
    checksum  bytea NOT NULL,
    size      bigint NOT NULL,
    uses      bigint NOT NULL,
    last_s    double precision NOT NULL,
    worth     double precision NOT NULL,
    PRIMARY KEY (tenant, id)
);
CREATE INDEX records_worth ON records (tenant, worth, change);
CREATE INDEX records_change ON records (tenant, change);
COMMENT ON COLUMN records.body IS 'JSON text, kept as it came; nothing here looks inside.';
COMMENT ON COLUMN records.checksum IS 'SHA-256 of the record with its vector, by stores/postgres_rows.py.';

-- Apart from the records: a scan for the nearest reads nothing else.
CREATE TABLE vectors (
    tenant    text NOT NULL,
    embedder  text NOT NULL,
    id        text NOT NULL,
    embedding vector NOT NULL,
    PRIMARY KEY (tenant, embedder, id),
    UNIQUE (tenant, id),
    FOREIGN KEY (tenant, id) REFERENCES records ON DELETE CASCADE
);

CREATE TABLE keys (
    tenant text NOT NULL,
    key    text NOT NULL,
    id     text NOT NULL,
    PRIMARY KEY (tenant, key, id),
    FOREIGN KEY (tenant, id) REFERENCES records ON DELETE CASCADE
);
CREATE INDEX keys_id ON keys (tenant, id);

CREATE TABLE labels (
    tenant text NOT NULL,
    label  text NOT NULL,
    id     text NOT NULL,
    PRIMARY KEY (tenant, label, id),
    FOREIGN KEY (tenant, id) REFERENCES records ON DELETE CASCADE
);
CREATE INDEX labels_id ON labels (tenant, id);

CREATE TABLE tenants (
    tenant  text PRIMARY KEY,
    entries bigint NOT NULL,
    bytes   bigint NOT NULL
);
COMMENT ON TABLE tenants IS 'What the records of each tenant come to, so that nobody counts them.';

CREATE TABLE notes (
    tenant text NOT NULL,
    name   text NOT NULL,
    sealed text NOT NULL,
    PRIMARY KEY (tenant, name)
);
COMMENT ON COLUMN notes.sealed IS 'A line with the SHA-256 of the rest, then JSON text.';

CREATE TABLE leases (
    tenant  text NOT NULL,
    name    text NOT NULL,
    holder  text NOT NULL,
    until_s double precision NOT NULL,
    PRIMARY KEY (tenant, name)
);

CREATE TABLE changes (
    tenant text NOT NULL,
    number bigint NOT NULL,
    id     text NOT NULL,
    kind   text NOT NULL CHECK (kind IN ('put', 'remove')),
    PRIMARY KEY (number, tenant)
);

CREATE TABLE damaged (
    tenant  text NOT NULL,
    place   text NOT NULL,
    change  bigint NOT NULL,
    content text NOT NULL,
    PRIMARY KEY (tenant, place, change)
);
COMMENT ON TABLE damaged IS 'Records and notes that were not what was written, set aside.';
