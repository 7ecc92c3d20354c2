-- Counts new dead letters, and those that stopped being pending with the time that they were pending,
-- whatever wrote them: in the same transaction, on shards of their own (tasker.free_shard; no namespace has
-- number 0), so no writer waits for another.
create or replace function tasker.count_dead_letters() returns trigger
language plpgsql
set search_path to pg_catalog, pg_temp
as $$
begin
  if tg_op = 'INSERT' then
    insert into tasker.dlq_counters as c (what, shard, number)
    select 'created', tasker.free_shard(0), count(*) from fresh having count(*) > 0
    on conflict (what, shard) do update set number = c.number + excluded.number;
    return null;
  end if;
  insert into tasker.dlq_counters as c (what, shard, number, hours)
  select q.what, tasker.free_shard(0), count(*), sum(q.hours)
  from (select w.hours,
    coalesce((select min(b)::text from unnest(array[1, 4, 8, 24, 72, 168, 720]) b where w.hours <= b),
      '+Inf') as what
    from (select extract(
        epoch from coalesce(n.resolved_at, tasker.now()) - n.dlq_timestamp)::double precision / 3600 as hours
      from fresh n join former o using (dlq_entry_uuid)
      where o.resolution_status = 'pending' and n.resolution_status <> 'pending') w) q
  group by q.what
  on conflict (what, shard) do update set number = c.number + excluded.number,
    hours = c.hours + excluded.hours;
  return null;
end
$$;

create or replace trigger dead_letters_created after insert on tasker.tasks_dlq
referencing new table as fresh for each statement execute function tasker.count_dead_letters();

create or replace trigger dead_letters_dealt_with after update on tasker.tasks_dlq
referencing new table as fresh old table as former
  for each statement execute function tasker.count_dead_letters();
