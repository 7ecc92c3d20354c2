-- Why an operator's action was not done. What is done in one transaction has its row in it, so that a row that was refused or
-- failed is written behind the rollback; only what takes several transactions has a row before the first.
alter table tasker.operator_actions add column refusal text;   -- a message, or the kind of an error whose message may be secret
