-- The place in a trace that the task was submitted at, as the headers `traceparent` and `tracestate` name it (W3C Trace Context);
-- null without one. Written once, and read with what handlers are given.
alter table tasker.task_details add column trace jsonb;
