CREATE STREAMING TABLE origins AS
SELECT value.origin, offset FROM STREAM flights;

CREATE MATERIALIZED VIEW delays AS
SELECT carrier, count(*) AS flights, avg(delay) AS delay FROM departures GROUP BY carrier;
