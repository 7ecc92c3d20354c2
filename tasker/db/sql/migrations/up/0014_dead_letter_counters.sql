-- How many dead letters there ever were, and how long those waited that were dealt with: entries go with their tasks, numbers
-- stay. `what` is 'created', or the most hours that those waited whom it counts. A transaction has a shard to itself.
create table tasker.dlq_counters (
  what   text not null,
  shard  int not null,
  number bigint not null default 0,
  hours  double precision not null default 0,
  primary key (what, shard)
) with (fillfactor = 50);
