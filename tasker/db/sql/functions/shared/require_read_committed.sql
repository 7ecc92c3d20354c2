-- Raises an error unless the transaction is READ COMMITTED: every change waits for a lock and must then see
-- the writes of others.
create or replace function tasker.require_read_committed() returns void
language plpgsql stable as $$
begin
  if current_setting('transaction_isolation') <> 'read committed' then
    raise exception 'tasker needs READ COMMITTED, this transaction is %',
      current_setting('transaction_isolation');
  end if;
end
$$;
