-- Offsets of each replica, minute by minute.
SELECT CAST(event_time AS DATE) AS event_date, *
FROM offsets_by_replica
