drop table tasker.operator_actions cascade;
