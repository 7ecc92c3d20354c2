delete from tasker.domain_events where published_with is not null;   -- earlier releases do not know which handler declares them
alter table tasker.domain_events drop column published_with;
