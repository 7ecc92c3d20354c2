drop table tasker.page_sessions cascade;
