-- Units are last in the names of columns; sample.unit says the rest.
BEGIN;
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
    environment    TEXT NOT NULL       -- JSON: host, kernel, cpu, cores, memory, tools
);
CREATE TABLE subject (
    position      INTEGER PRIMARY KEY, -- in the campaign, from 0
    name          TEXT NOT NULL UNIQUE,
    size_bytes    INTEGER,
    members       TEXT NOT NULL,       -- JSON: each member and the device under it
    serve_command TEXT
);
CREATE TABLE trial (
    number         INTEGER PRIMARY KEY, -- position in the schedule, from 1
    session        INTEGER NOT NULL REFERENCES session (id),
    repetition     INTEGER NOT NULL,
    subject        TEXT NOT NULL,
    workload       TEXT NOT NULL,
    tool           TEXT NOT NULL,
    pattern        TEXT NOT NULL,
    op             TEXT NOT NULL,
    block_size     INTEGER NOT NULL,    -- bytes
    iodepth        INTEGER NOT NULL,
    processes      INTEGER NOT NULL,
    direct         INTEGER NOT NULL,
    flush_every    INTEGER NOT NULL,
    seed           INTEGER NOT NULL,
    region_bytes   INTEGER NOT NULL,
    command        TEXT NOT NULL,
    started_unix_s INTEGER NOT NULL,
    duration_s     REAL NOT NULL,
    error          TEXT,                -- NULL: the trial went well
    raw            TEXT NOT NULL        -- file, relative to the directory
);
CREATE TABLE sample (
    trial  INTEGER NOT NULL REFERENCES trial (number),
    metric TEXT NOT NULL,
    value  REAL NOT NULL,
    unit   TEXT NOT NULL
);
CREATE INDEX sample_by_trial ON sample (trial);
PRAGMA user_version = 1;
COMMIT;
