-- The number of dead letters ever created, and the time until they were resolved: entries are deleted with their tasks,
-- counters stay. `what` is 'created', or an upper limit in hours of the time until resolution. Each transaction has a
-- shard to itself.
create table tasker.dlq_counters (
  what   text not null,
  shard  int not null,
  number bigint not null default 0,
  hours  double precision not null default 0,
  primary key (what, shard)
) with (fillfactor = 50);
