CREATE TABLE desk_firms (firm_no integer PRIMARY KEY, label text NOT NULL, zone text NOT NULL);
CREATE TABLE desk_staff (
    staff_no integer PRIMARY KEY,
    login text NOT NULL UNIQUE,
    full_name text NOT NULL,
    secret text NOT NULL,
    seen timestamptz,
    state text NOT NULL
);
CREATE TABLE desk_bots (
    bot_no integer PRIMARY KEY, firm_no integer NOT NULL REFERENCES desk_firms, nick text NOT NULL
);
CREATE TABLE desk_clients (
    client_no integer PRIMARY KEY, firm_no integer NOT NULL REFERENCES desk_firms, label text NOT NULL
);
CREATE TABLE desk_teams (
    team_no integer PRIMARY KEY,
    firm_no integer REFERENCES desk_firms,
    bot_no integer REFERENCES desk_bots
);
CREATE TABLE desk_role_rights (right_no integer PRIMARY KEY, role text NOT NULL, name text NOT NULL);
CREATE TABLE desk_members (
    member_no integer PRIMARY KEY,
    team_no integer NOT NULL REFERENCES desk_teams,
    staff_no integer NOT NULL REFERENCES desk_staff,
    role text NOT NULL
);
CREATE TABLE desk_rules (
    rule_no integer PRIMARY KEY,
    bot_no integer NOT NULL REFERENCES desk_bots,
    label text NOT NULL,
    hooked boolean NOT NULL,
    owner_no integer REFERENCES desk_staff
);
CREATE TABLE desk_threads (
    thread_no integer PRIMARY KEY,
    firm_no integer NOT NULL REFERENCES desk_firms,
    bot_no integer NOT NULL REFERENCES desk_bots,
    client_no integer REFERENCES desk_clients,
    staff_no integer REFERENCES desk_staff,
    subject text,
    opened timestamptz NOT NULL,
    moved timestamptz NOT NULL,
    entries integer NOT NULL,
    kept_from integer NOT NULL,
    digest text,
    digest_to integer,
    status text NOT NULL
);
CREATE INDEX desk_threads_moved ON desk_threads (bot_no, moved DESC, thread_no DESC);
CREATE TABLE desk_entries (
    entry_no integer PRIMARY KEY,
    thread_no integer NOT NULL REFERENCES desk_threads,
    firm_no integer NOT NULL REFERENCES desk_firms,
    place integer NOT NULL,
    kind text NOT NULL,
    parts jsonb,
    flags jsonb NOT NULL,
    written timestamptz NOT NULL,
    UNIQUE (thread_no, place)
);
CREATE TABLE desk_runs (
    run_no integer PRIMARY KEY,
    firm_no integer NOT NULL REFERENCES desk_firms,
    thread_no integer NOT NULL REFERENCES desk_threads,
    staff_no integer REFERENCES desk_staff,
    rule_no integer REFERENCES desk_rules,
    state text NOT NULL,
    began timestamptz NOT NULL
);
CREATE INDEX desk_runs_thread ON desk_runs (thread_no);
CREATE VIEW desk_plain_threads AS
    SELECT thread_no, firm_no, bot_no, CAST(NULL AS integer) AS client_no, staff_no, subject, opened, moved,
           entries, status
    FROM desk_threads;
CREATE VIEW desk_plain_runs AS
    SELECT run_no, firm_no, thread_no, staff_no, CAST(NULL AS integer) AS rule_no, state
    FROM desk_runs WHERE rule_no IS NULL;
