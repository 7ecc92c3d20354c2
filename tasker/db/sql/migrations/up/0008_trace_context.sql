-- The trace context in which the task was submitted, as the headers `traceparent` and `tracestate` (W3C Trace Context);
-- null without one. Written once, and read with the inputs of handlers.
alter table tasker.task_details add column trace jsonb;
