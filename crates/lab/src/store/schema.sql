-- Units are last in the names of columns; sample.unit says the rest.
CREATE TABLE campaign (
    name        TEXT NOT NULL,
    description TEXT NOT NULL,
    repetitions INTEGER NOT NULL,
    seed        INTEGER NOT NULL,      -- an unsigned number's bits
    toml        TEXT NOT NULL
);
CREATE TABLE session (
    id             INTEGER PRIMARY KEY,
    started_unix_s INTEGER NOT NULL,
    ended_unix_s   INTEGER,            -- NULL: it was cut off
    environment    TEXT NOT NULL,      -- JSON: host, kernel, cpu, cores, memory, tools
    busy_s         REAL NOT NULL DEFAULT 0, -- wall time of the tools themselves
    set_up_s       REAL NOT NULL DEFAULT 0, -- bringing up, mkfs, preparing, resting
    overhead_s     REAL NOT NULL DEFAULT 0  -- all the rest of the laboratory's own time
);
CREATE TABLE subject (
    position   INTEGER PRIMARY KEY,    -- in the campaign, from 0
    name       TEXT NOT NULL UNIQUE,
    size_bytes INTEGER,
    members    TEXT NOT NULL,          -- JSON: each member and the device under it
    commands   TEXT NOT NULL           -- JSON: how it was last brought up
);
CREATE TABLE trial (
    number         INTEGER PRIMARY KEY, -- position in the schedule, from 1
    session        INTEGER NOT NULL REFERENCES session (id),
    repetition     INTEGER NOT NULL,
    subject        TEXT NOT NULL,
    workload       TEXT NOT NULL,       -- its label
    dimensions     TEXT NOT NULL,       -- JSON: every dimension of workload and subject
    seed           INTEGER NOT NULL,
    region_bytes   INTEGER NOT NULL,
    commands       TEXT NOT NULL,       -- JSON: the exact command lines, set-up first
    started_unix_s INTEGER NOT NULL,
    duration_s     REAL NOT NULL,
    outcome        TEXT NOT NULL,       -- ok, failed, impossible
    reason         TEXT NOT NULL,       -- why not; empty when ok
    evidence       TEXT NOT NULL,       -- JSON: what the machine did meanwhile
    events         TEXT NOT NULL,       -- JSON: what was done to the array: seconds, words
    raw            TEXT NOT NULL        -- folder or file, relative to the directory
);
CREATE TABLE sample (
    trial  INTEGER NOT NULL REFERENCES trial (number),
    metric TEXT NOT NULL,
    value  REAL NOT NULL,
    unit   TEXT NOT NULL
);
CREATE INDEX sample_by_trial ON sample (trial);
CREATE TABLE latency (
    trial INTEGER NOT NULL REFERENCES trial (number),
    op    TEXT NOT NULL,
    bins  TEXT NOT NULL                 -- JSON: [nanoseconds, count] rising
);
CREATE INDEX latency_by_trial ON latency (trial);
CREATE TABLE series (
    trial  INTEGER NOT NULL REFERENCES trial (number),
    metric TEXT NOT NULL,
    points TEXT NOT NULL                -- JSON: [milliseconds, value] rising
);
CREATE INDEX series_by_trial ON series (trial);
