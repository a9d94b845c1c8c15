import { Effect } from "effect"
import { Migrator, SqlClient } from "effect/sql"

/**
 * The tables.
 *
 * Types that SQLite and PostgreSQL read alike: times are epoch milliseconds in BIGINT,
 * flags are 0 or 1, JSON is TEXT.
 */
const createTables = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient

  yield* sql`CREATE TABLE conversations (
    id TEXT PRIMARY KEY,
    owner TEXT NOT NULL,
    agent_id TEXT NOT NULL,
    is_version INTEGER NOT NULL,
    variables TEXT NOT NULL,
    next_position BIGINT NOT NULL,
    next_turn BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL
  )`

  yield* sql`CREATE TABLE user_requests (
    id TEXT PRIMARY KEY,
    conversation_id TEXT NOT NULL REFERENCES conversations (id),
    owner TEXT NOT NULL,
    turn BIGINT NOT NULL,
    agent_id TEXT NOT NULL,
    is_version INTEGER NOT NULL,
    variables TEXT NOT NULL,
    status TEXT NOT NULL,
    generation BIGINT NOT NULL,
    lease_expires_at BIGINT,
    iteration BIGINT NOT NULL,
    max_iterations BIGINT NOT NULL,
    max_retries BIGINT NOT NULL,
    loaded_tools TEXT NOT NULL,
    input_tokens BIGINT NOT NULL,
    output_tokens BIGINT NOT NULL,
    metadata TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    UNIQUE (conversation_id, turn)
  )`
  yield* sql`CREATE INDEX user_requests_lease ON user_requests (status, lease_expires_at)`

  yield* sql`CREATE TABLE runs (
    id TEXT PRIMARY KEY,
    user_request_id TEXT NOT NULL REFERENCES user_requests (id),
    conversation_id TEXT NOT NULL,
    owner TEXT NOT NULL,
    generation BIGINT NOT NULL,
    started_at BIGINT NOT NULL
  )`

  yield* sql`CREATE TABLE messages (
    id TEXT PRIMARY KEY,
    conversation_id TEXT NOT NULL REFERENCES conversations (id),
    user_request_id TEXT NOT NULL REFERENCES user_requests (id),
    position BIGINT NOT NULL,
    role TEXT NOT NULL,
    content TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    UNIQUE (conversation_id, position)
  )`

  yield* sql`CREATE TABLE tool_calls (
    id TEXT PRIMARY KEY,
    call_id TEXT NOT NULL,
    conversation_id TEXT NOT NULL REFERENCES conversations (id),
    user_request_id TEXT NOT NULL REFERENCES user_requests (id),
    message_id TEXT,
    owner TEXT NOT NULL,
    tool_name TEXT NOT NULL,
    tool_name_as_called TEXT NOT NULL,
    arguments TEXT NOT NULL,
    iteration BIGINT NOT NULL,
    generation BIGINT NOT NULL,
    status TEXT NOT NULL,
    is_client_delegated INTEGER NOT NULL,
    executor TEXT,
    success INTEGER,
    is_error INTEGER NOT NULL,
    error_type TEXT,
    error_message TEXT,
    output TEXT,
    duration_ms BIGINT,
    started_at BIGINT NOT NULL,
    completed_at BIGINT,
    expires_at BIGINT,
    resolved_at BIGINT,
    resolution_source TEXT,
    target_instance_id TEXT,
    claimed_by_instance_id TEXT,
    claimed_at BIGINT,
    claim_expires_at BIGINT,
    runtime_execution_id TEXT,
    metadata TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    UNIQUE (conversation_id, call_id)
  )`
  yield* sql`CREATE INDEX tool_calls_request ON tool_calls (user_request_id, status)`
  yield* sql`CREATE INDEX tool_calls_owner ON tool_calls (owner, status)`
  yield* sql`CREATE INDEX tool_calls_expiry ON tool_calls (status, expires_at)`

  yield* sql`CREATE TABLE desktop_instances (
    owner TEXT NOT NULL,
    id TEXT NOT NULL,
    last_seen BIGINT NOT NULL,
    PRIMARY KEY (owner, id)
  )`
})

/** Brings the tables up to date. Safe to run by every process at every start. */
export const migrate = Migrator.make({})({
  loader: Migrator.fromRecord({ "1_create_tables": createTables }),
  table: "backend_migrations"
})
