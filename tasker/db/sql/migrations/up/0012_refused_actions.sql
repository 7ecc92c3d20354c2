-- The reason why an operator action was not carried out. An action in one transaction has its row in it, so the row of
-- a refused or failed action is written after the rollback; only an action of several transactions has a row before the
-- first.
alter table tasker.operator_actions add column refusal text;   -- a message, or the type of an error whose message may be secret
