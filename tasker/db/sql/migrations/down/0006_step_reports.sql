drop table tasker.step_progress cascade;
drop table tasker.step_logs cascade;
