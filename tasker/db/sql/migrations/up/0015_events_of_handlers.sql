-- For events published by a handler itself: the number of events that it published with the result, so that a missing
-- one is detected; null for events declared by a template.
alter table tasker.domain_events add column published_with int;
