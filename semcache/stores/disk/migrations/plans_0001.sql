-- The tables of stores/postgres/migrations/0001_records.sql in the dialect of SQLite: lists are JSON
-- arrays, vectors little-endian float32, and no role is to be kept from a tenant.

CREATE TABLE state (
    single      INTEGER PRIMARY KEY DEFAULT 1 CHECK (single = 1),
    last_change INTEGER NOT NULL DEFAULT 0,
    forgotten   INTEGER NOT NULL DEFAULT 0,
    entries     INTEGER NOT NULL DEFAULT 0,
    bytes       INTEGER NOT NULL DEFAULT 0
);
INSERT INTO state DEFAULT VALUES;

CREATE TABLE records (
    tenant    TEXT NOT NULL,
    id        TEXT NOT NULL,
    change    INTEGER NOT NULL,
    keys      TEXT NOT NULL,
    labels    TEXT NOT NULL,
    embedder  TEXT NOT NULL,
    created_s REAL NOT NULL,
    expires_s REAL,
    cost_s    REAL NOT NULL,
    checksum  BLOB NOT NULL,
    size      INTEGER NOT NULL,
    uses      INTEGER NOT NULL,
    last_s    REAL NOT NULL,
    worth     REAL NOT NULL,
    body      TEXT NOT NULL,
    PRIMARY KEY (tenant, id)
);
CREATE INDEX records_worth ON records (tenant, worth, change);
CREATE INDEX records_change ON records (tenant, change);

CREATE TABLE vectors (
    tenant    TEXT NOT NULL,
    id        TEXT NOT NULL,
    embedder  TEXT NOT NULL,
    embedding BLOB NOT NULL,
    PRIMARY KEY (tenant, id),
    FOREIGN KEY (tenant, id) REFERENCES records ON DELETE CASCADE
);

CREATE TABLE keys (
    tenant TEXT NOT NULL,
    key    TEXT NOT NULL,
    id     TEXT NOT NULL,
    PRIMARY KEY (tenant, key, id),
    FOREIGN KEY (tenant, id) REFERENCES records ON DELETE CASCADE
) WITHOUT ROWID;
CREATE INDEX keys_id ON keys (tenant, id);

CREATE TABLE labels (
    tenant TEXT NOT NULL,
    label  TEXT NOT NULL,
    id     TEXT NOT NULL,
    PRIMARY KEY (tenant, label, id),
    FOREIGN KEY (tenant, id) REFERENCES records ON DELETE CASCADE
) WITHOUT ROWID;
CREATE INDEX labels_id ON labels (tenant, id);

CREATE TABLE tenants (
    tenant  TEXT PRIMARY KEY,
    entries INTEGER NOT NULL,
    bytes   INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX tenants_entries ON tenants (entries DESC, tenant);
CREATE INDEX tenants_bytes ON tenants (bytes DESC, tenant);

CREATE TABLE notes (
    tenant TEXT NOT NULL,
    name   TEXT NOT NULL,
    sealed TEXT NOT NULL,
    PRIMARY KEY (tenant, name)
);

CREATE TABLE leases (
    tenant  TEXT NOT NULL,
    name    TEXT NOT NULL,
    holder  TEXT NOT NULL,
    until_s REAL NOT NULL,
    PRIMARY KEY (tenant, name)
) WITHOUT ROWID;

CREATE TABLE changes (
    number INTEGER PRIMARY KEY,
    tenant TEXT NOT NULL,
    id     TEXT NOT NULL,
    kind   TEXT NOT NULL CHECK (kind IN ('put', 'remove'))
);

CREATE TABLE damaged (
    tenant  TEXT NOT NULL,
    place   TEXT NOT NULL,
    change  INTEGER NOT NULL,
    content TEXT NOT NULL,
    PRIMARY KEY (tenant, place, change)
);
