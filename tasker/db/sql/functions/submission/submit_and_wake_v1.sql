-- Submits in a transaction of its own and wakes who sleeps in a second one, with one round trip. A notification takes a
-- lock of the whole server until its transaction has reached the disk: sent with the tasks, it would let only one
-- submission commit at a time. `p_args` as submit_v1, with `announce`: false; `p_call` runs a core function and sends
-- what it answers (`TransactionalSql.call`).
-- What fails behind the commit is a warning: the tasks exist. No path of its own, which would forbid the commit.
create or replace procedure tasker.submit_and_wake_v1(p_call text, p_args jsonb, inout answer jsonb)
language plpgsql as $$
begin
  execute pg_catalog.format('select %s($1, $2)', p_call::pg_catalog.regproc) using 'submit_v1', p_args into answer;
  commit;
  if answer operator(pg_catalog.->) 'sent' operator(pg_catalog.=) '{}' then
    return;
  end if;
  set local synchronous_commit to off;   -- nothing of this must reach the disk
  begin
    perform tasker.wake_v1(array(select pg_catalog.jsonb_object_keys(answer operator(pg_catalog.->) 'sent')));
  exception when others then
    raise warning 'nobody was woken: %', sqlerrm;
  end;
end
$$;
