-- What an upgrade needs before the first migration: the schema itself, and the record of every script applied to it.
-- Safe to run again.
create schema if not exists tasker;

create table if not exists tasker.schema_scripts (
  name        text primary key,
  sha256      text not null,
  release     text,  -- of Tasker, that wrote it last: an older one replaces nothing
  applied_at  timestamptz not null default pg_catalog.now()
);

-- Not `add column if not exists`, which would lock the table against every process that starts meanwhile.
do $$ begin
  if not exists (select from pg_catalog.pg_attribute
                 where attrelid = 'tasker.schema_scripts'::pg_catalog.regclass and attname = 'release') then
    alter table tasker.schema_scripts add column release text;
  end if;
end $$;
