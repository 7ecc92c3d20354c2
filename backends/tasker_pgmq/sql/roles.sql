-- Queues belong to the schema's owner, whichever role creates them (tasker_pgmq.ensure_queue runs with its rights): so
-- the same roles can use future queues.
do $do$
declare
  owner constant text := (select p.proowner::regrole from pg_proc p where p.oid = 'tasker_pgmq.ensure_queue(text)'::regprocedure);
begin
  grant usage on schema pgmq, tasker_pgmq to {roles};
  grant select, insert, update, delete on all tables in schema pgmq to {roles};
  revoke insert, update, delete on pgmq.meta from {roles};
  grant execute on function tasker_pgmq.ensure_queue(text) to {roles};
  execute format('alter default privileges for role %s in schema pgmq grant select, insert, update, delete on tables to {roles}', owner);
end
$do$;
