-- What rules of several results may use. Words of the engine itself are in udfs/engine/macros.sql.

-- The name by which quotas know a principal: what follows its type.
CREATE MACRO user_of(principal) AS substring(principal, instr(principal, ':') + 1);
