-- What all tenants come to, and who of them has most, so that no write has to look at each. By a
-- trigger, so that a process of an earlier semcache that has the tables open keeps it up too.

ALTER TABLE state
    ADD COLUMN entries bigint NOT NULL DEFAULT 0,
    ADD COLUMN bytes   bigint NOT NULL DEFAULT 0;
UPDATE state SET
    entries = (SELECT coalesce(sum(t.entries), 0) FROM tenants t),
    bytes = (SELECT coalesce(sum(t.bytes), 0) FROM tenants t);

CREATE INDEX tenants_entries ON tenants (entries DESC, tenant COLLATE "C");
CREATE INDEX tenants_bytes ON tenants (bytes DESC, tenant COLLATE "C");

CREATE FUNCTION add_up() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format(
        'UPDATE %I.state SET entries = entries + $1, bytes = bytes + $2', TG_TABLE_SCHEMA
    ) USING
        CASE WHEN TG_OP = 'DELETE' THEN 0 ELSE NEW.entries END
            - CASE WHEN TG_OP = 'INSERT' THEN 0 ELSE OLD.entries END,
        CASE WHEN TG_OP = 'DELETE' THEN 0 ELSE NEW.bytes END
            - CASE WHEN TG_OP = 'INSERT' THEN 0 ELSE OLD.bytes END;
    RETURN NULL;
END $$;
CREATE TRIGGER add_up AFTER INSERT OR UPDATE OR DELETE ON tenants
    FOR EACH ROW EXECUTE FUNCTION add_up();
