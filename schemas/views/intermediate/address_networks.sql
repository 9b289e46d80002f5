-- kind: intermediate
-- grain: one row per cluster, list and network of addresses
-- area: producer_ids
-- level: admin_api
-- description: Addresses and networks that conf lists, and those that are of each machine. A plan
--   limits none that is protected or of each machine, except loopback that conf lists by itself.
-- columns:
--   from current_settings: cluster_id
--   list: limited or protected (producer_ids.limited_addresses, producer_ids.protected_addresses),
--     loopback, or special: unspecified, link-local, multicast, reserved and broadcast addresses
--   network: a network as CIDR, or one address
--   first_digits: its first address as hex digits, 8 of IPv4 and 32 of IPv6, which compare as addresses
--     of one length do
--   last_digits: the same of its last address
SELECT
    cluster_id,
    list,
    split_part(line, ' ', 1) AS network,
    split_part(line, ' ', 2) AS first_digits,
    split_part(line, ' ', 3) AS last_digits
FROM (
    SELECT
        cluster_id,
        CASE setting WHEN 'producer_ids.limited_addresses' THEN 'limited' ELSE 'protected' END AS list,
        explode(split(setting_value, chr(10))) AS line
    FROM current_settings
    WHERE setting IN ('producer_ids.limited_addresses', 'producer_ids.protected_addresses')
) AS lines
WHERE line <> ''
UNION ALL
SELECT clusters.cluster_id, networks.list, networks.network, networks.first_digits, networks.last_digits
FROM (SELECT DISTINCT cluster_id FROM current_settings) AS clusters
CROSS JOIN (
    VALUES
    ('special', '0.0.0.0/8', '00000000', '00ffffff'),
    ('loopback', '127.0.0.0/8', '7f000000', '7fffffff'),
    ('special', '169.254.0.0/16', 'a9fe0000', 'a9feffff'),
    ('special', '224.0.0.0/3', 'e0000000', 'ffffffff'),
    ('special', '::', repeat('0', 32), repeat('0', 32)),
    ('loopback', '::1', concat(repeat('0', 31), '1'), concat(repeat('0', 31), '1')),
    ('special', 'fe80::/10', concat('fe80', repeat('0', 28)), concat('febf', repeat('f', 28))),
    ('special', 'ff00::/8', concat('ff', repeat('0', 30)), repeat('f', 32))
) AS networks (list, network, first_digits, last_digits)
