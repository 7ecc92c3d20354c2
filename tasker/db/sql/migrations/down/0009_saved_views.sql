drop table tasker.saved_views cascade;
