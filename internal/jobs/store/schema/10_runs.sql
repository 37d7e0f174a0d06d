-- Runs have a row for each pod of a job. A pod's job is known by its own log, so that a row is its
-- job's as transitions are: it is found, seen and removed with it. Of a pod whose job is not known
-- yet, log is the log of pods itself, and nobody is shown it. Numbers are the log of pods',
-- whatever the job's kind. Gone is when the pod was removed from its cluster, and 0 until then.
CREATE TABLE IF NOT EXISTS runs (
	log BIGINT NOT NULL,
	pod $KEY NOT NULL,
	pods BIGINT NOT NULL,
	seq BIGINT NOT NULL,
	namespace $KEY NOT NULL,
	namespace_uid $KEY,
	pod_name $KEY NOT NULL,
	resource $KEY NOT NULL,
	uid $KEY NOT NULL,
	name $KEY NOT NULL,
	owner $KEY NOT NULL,
	queue $KEY NOT NULL,
	version BIGINT NOT NULL,
	ordinal $KEY NOT NULL,
	node $KEY NOT NULL,
	created BIGINT NOT NULL,
	scheduled BIGINT NOT NULL,
	started BIGINT NOT NULL,
	ended BIGINT NOT NULL,
	gone BIGINT NOT NULL,
	late BIGINT NOT NULL,
	restarts BIGINT NOT NULL,
	reason $TEXT NOT NULL,
	message $TEXT NOT NULL,
	container $KEY NOT NULL,
	exit_code BIGINT,
	exit_signal BIGINT,
	requests $TEXT NOT NULL,
	devices $TEXT NOT NULL,
	PRIMARY KEY (log, pod)
) $OPTIONS;
CREATE INDEX IF NOT EXISTS runs_seq ON runs (log, seq) $UNLIKE;
CREATE INDEX IF NOT EXISTS runs_gone ON runs (pods, gone);
CREATE INDEX IF NOT EXISTS runs_created ON runs (log, created, pod, namespace, owner, queue, uid) $UNLIKE;
CREATE INDEX IF NOT EXISTS runs_uid ON runs (log, uid, created, pod, namespace, owner, queue) $UNLIKE;
CREATE INDEX IF NOT EXISTS runs_name ON runs (log, name, created, pod, namespace, owner, queue) $UNLIKE;
CREATE INDEX IF NOT EXISTS runs_namespace ON runs (log, namespace, created, pod, owner, queue, uid) $UNLIKE;
CREATE INDEX IF NOT EXISTS runs_owner ON runs (log, owner, created, pod, namespace, queue, uid) $UNLIKE;

-- Totals have a row for each job that has runs. Held_until is stillRuns as long as any of them
-- holds its node.
CREATE TABLE IF NOT EXISTS totals (
	log BIGINT NOT NULL,
	uid $KEY NOT NULL,
	first_held BIGINT NOT NULL,
	held_until BIGINT NOT NULL,
	total $TEXT NOT NULL,
	PRIMARY KEY (log, uid)
) $OPTIONS;
CREATE INDEX IF NOT EXISTS totals_until ON totals (log, held_until, first_held);
-- Of a log of pods: since when it has all that happened. NULL: it never had.
ALTER TABLE logs ADD COLUMN IF NOT EXISTS whole_since BIGINT;
