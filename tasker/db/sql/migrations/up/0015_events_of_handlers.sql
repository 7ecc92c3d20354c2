-- Events that a handler publishes itself, beside those that its template declares: null for these, else how many its handler
-- published with the result, so that one that is missing is found.
alter table tasker.domain_events add column published_with int;
