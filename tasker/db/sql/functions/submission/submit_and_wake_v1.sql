-- Submits in a transaction of its own and wakes sleeping workers in a second one, in one round trip. A
-- notification takes a lock of the whole server until its transaction is on disk: sent with the tasks, it
-- would let only one submission commit at a time. `p_args` is as in submit_v1, with `announce`: false;
-- `p_call` runs a core function and sends the messages of its answer (`TransactionalSql.call`). An error
-- after the commit is a warning, because the tasks exist. No search path of its own, which would forbid the
-- commit.
create or replace procedure tasker.submit_and_wake_v1(p_call text, p_args jsonb, inout answer jsonb)
language plpgsql as $$
begin
  execute pg_catalog.format('select %s($1, $2)', p_call::pg_catalog.regproc) using 'submit_v1',
  p_args into answer;
  commit;
  if answer operator(pg_catalog.->) 'sent' operator(pg_catalog.=) '{}' then
    return;
  end if;
  set local synchronous_commit to off;   -- none of this must reach the disk
  begin
    perform tasker.wake_v1(array(select pg_catalog.jsonb_object_keys(answer operator(pg_catalog.->) 'sent')));
  exception when others then
    raise warning 'no worker was notified: %', sqlerrm;
  end;
end
$$;
