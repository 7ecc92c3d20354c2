-- Prerequisites of the first migration: the schema, and the record of every script applied to it. Safe to run
-- again. The existence of the schema is checked first because `create schema if not exists` needs the right
-- to create schemas even where the schema exists.
do $$ begin
  if pg_catalog.current_setting('server_encoding') <> 'UTF8' then
    raise exception 'the encoding of this database is %, which cannot hold every character of a result',
        pg_catalog.current_setting('server_encoding')
      using hint = pg_catalog.format(
        'use one in UTF8: create database %I encoding ''UTF8'' template template0',
        pg_catalog.current_database());
  end if;
  if pg_catalog.to_regnamespace('tasker') is null then
    create schema tasker;
  end if;
end $$;

create table if not exists tasker.schema_scripts (
  name        text primary key,
  sha256      text not null,
  release     text not null,  -- of Tasker, that last wrote it: an older release replaces nothing
  applied_at  timestamptz not null default pg_catalog.now()
);
