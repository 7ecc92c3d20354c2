drop function if exists tasker.count_dead_letters() cascade;
drop table tasker.dlq_counters;
