-- Row-level security: a role sees the tenants that it was granted, whatever the client asks for.
-- The owner of the tables is not bound by it, and no other role may touch them before a grant.

CREATE TABLE grants (
    role   name NOT NULL,
    tenant text NOT NULL,
    PRIMARY KEY (tenant, role)
);
COMMENT ON TABLE grants IS 'Which role may see which tenant; written by PostgresStore.grant.';
ALTER TABLE grants ENABLE ROW LEVEL SECURITY;
CREATE POLICY own ON grants FOR SELECT USING (role = current_user);

ALTER TABLE records ENABLE ROW LEVEL SECURITY;
ALTER TABLE vectors ENABLE ROW LEVEL SECURITY;
ALTER TABLE keys ENABLE ROW LEVEL SECURITY;
ALTER TABLE labels ENABLE ROW LEVEL SECURITY;
ALTER TABLE tenants ENABLE ROW LEVEL SECURITY;
ALTER TABLE notes ENABLE ROW LEVEL SECURITY;
ALTER TABLE leases ENABLE ROW LEVEL SECURITY;
ALTER TABLE changes ENABLE ROW LEVEL SECURITY;
ALTER TABLE damaged ENABLE ROW LEVEL SECURITY;

CREATE POLICY granted ON records USING (tenant IN (SELECT g.tenant FROM grants g));
CREATE POLICY granted ON vectors USING (tenant IN (SELECT g.tenant FROM grants g));
CREATE POLICY granted ON keys USING (tenant IN (SELECT g.tenant FROM grants g));
CREATE POLICY granted ON labels USING (tenant IN (SELECT g.tenant FROM grants g));
CREATE POLICY granted ON tenants USING (tenant IN (SELECT g.tenant FROM grants g));
CREATE POLICY granted ON notes USING (tenant IN (SELECT g.tenant FROM grants g));
CREATE POLICY granted ON leases USING (tenant IN (SELECT g.tenant FROM grants g));
CREATE POLICY granted ON changes USING (tenant IN (SELECT g.tenant FROM grants g));
CREATE POLICY granted ON damaged USING (tenant IN (SELECT g.tenant FROM grants g));
