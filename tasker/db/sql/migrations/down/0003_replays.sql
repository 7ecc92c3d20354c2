drop table tasker.dlq_replay_items cascade;
drop table tasker.dlq_replays cascade;
