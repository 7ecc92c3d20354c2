-- What an upgrade needs before the first migration: the schema itself, and the record of every script applied to it.
-- Safe to run again.
create schema if not exists tasker;

create table if not exists tasker.schema_scripts (
  name        text primary key,
  sha256      text not null,
  applied_at  timestamptz not null default pg_catalog.now()
);
