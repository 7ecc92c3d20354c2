delete from tasker.domain_events where published_with is not null;   -- nothing before knows what declares them
alter table tasker.domain_events drop column published_with;
