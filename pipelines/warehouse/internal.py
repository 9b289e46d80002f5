"""Programs of brokers and of this pipeline in SQL: they are in no list of what users have to do."""


def not_in(table: str) -> str:
    """A condition on rows of `table`: their login is not one of brokers or of this pipeline.

    By principal alone, because a client chooses its client id.
    """
    return f"""NOT EXISTS (
    SELECT 1 FROM protected_principals AS internal
    WHERE internal.is_internal AND internal.cluster_id = {table}.cluster_id
        AND internal.principal = {table}.principal
)"""
