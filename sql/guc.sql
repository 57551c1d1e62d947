-- The settings.
\x on
SELECT name, context, vartype, unit, min_val, max_val, enumvals, boot_val, short_desc, extra_desc
FROM pg_settings WHERE name LIKE 'grouplog.%' ORDER BY name;
\x off

-- For a session: the mode and the window of its own appends, nothing else.
SET grouplog.sync_mode = 'Batch';
SHOW grouplog.sync_mode;
SET grouplog.sync_mode = 'sometimes';
RESET grouplog.sync_mode;
SET grouplog.group_window = '200us';
SHOW grouplog.group_window;
SET grouplog.group_window = 1.5;
SHOW grouplog.group_window;
\set VERBOSITY sqlstate
SET grouplog.group_window = '9us';
SET grouplog.group_window = '11s';
\set VERBOSITY default
RESET grouplog.group_window;

SET grouplog.group_bytes = '1MB';
SET grouplog.sync_period = '1min';
SET grouplog.sync_lag_limit = '1min';
SET grouplog.max_size = '1GB';
SET grouplog.on_full = 'recycle';
SET grouplog.min_free_space = 0;
SET grouplog.log_sync_min_duration = 0;
SET grouplog.buffers = '1MB';
SET grouplog.segment_size = '1MB';
SET grouplog.directory = 'elsewhere';
SET grouplog.io_method = 'sync';
SET grouplog.sync_method = 'fdatasync';
SET grouplog.adopt = on;

-- The prefix is reserved.
SET grouplog.sync_mod = 'batch';

-- What ALTER SYSTEM takes for a size must be a power of two.
ALTER SYSTEM SET grouplog.buffers = '768kB';
ALTER SYSTEM SET grouplog.segment_size = '48MB';
ALTER SYSTEM SET grouplog.directory = '';
