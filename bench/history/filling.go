//go:build linux

package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/bits"
	"strings"
)

// The databases make the rows themselves, which is the fastest way to many millions. Each job goes
// through five states, a thousand jobs at a time one beside the other, so that what belongs to one
// job, owner or queue lies scattered. Jobs and owners are as uneven as they are: some namespaces
// have thousands of times as many jobs as others, and a quarter of all are those of one robot.
const (
	steps     = 5    // transitions of each job
	abreast   = 1000 // jobs
	block     = steps * abreast
	firstTime = 1_700_000_000_000 // in milliseconds
	period    = 30 * 24 * 3_600_000
	living    = 20_000 // the newest jobs, which are not deleted
)

// expressions over a row's j (a job's number from 0), k (its step from 0) and i (its transition's number from 1).
var expressions = map[string]string{
	"h":         "(j * 2654435761 % 4294967291)",
	"uid":       "$STR(10000000000 + $h) || '-4000-8000-' || $STR(1000000000000 + j)",
	"namespace": "CASE WHEN $h % 10 < 5 THEN 'large-' || $STR($h % 7) ELSE 'team-' || $STR($h / 16 % 500) END",
	"called":    "'train-' || $STR($h % 1000003)",
	"owner":     "CASE WHEN $h / 3 % 4 = 0 THEN 'robot' ELSE 'user-' || $STR($h / 32 % 3000) END",
	"queue":     "CASE WHEN $h / 5 % 5 = 0 THEN '' WHEN $h / 5 % 5 < 3 THEN 'default' ELSE 'queue-' || $STR($h / 64 % 40) END",
	"end":       "CASE WHEN $h % 13 = 0 THEN 'Failed' ELSE 'Succeeded' END",
	"second":    "CASE WHEN $h % 4 = 0 THEN 'Suspended' ELSE 'Pending' END",
	"last":      "CASE WHEN j >= $jobs - $living THEN 'Retrying' ELSE 'Deleted' END",
}

func at(i string) string { return fmt.Sprintf("(%d + (%s) * %d / $rows)", firstTime, i, period) }

// dialect is how a database says something.
type dialect struct {
	str, divided string
	series       string // of the numbers from $from to $to, as x
	before       []string
}

var dialects = map[string]dialect{
	"sqlite": {"CAST(%s AS TEXT)", "/", "(WITH RECURSIVE g(x) AS (VALUES($from) UNION ALL SELECT x + 1 FROM g WHERE x < $to) SELECT x FROM g)",
		[]string{"PRAGMA journal_mode = OFF", "PRAGMA synchronous = OFF", "PRAGMA cache_size = -500000"}},
	"postgres": {"CAST(%s AS TEXT)", "/", "(SELECT x FROM generate_series(CAST($from AS BIGINT), $to) AS g(x))", []string{"SET maintenance_work_mem = '1GB'", "SET synchronous_commit = off"}},
	"mysql": {"CAST(%s AS CHAR)", " DIV ", "(SELECT CAST(seq AS SIGNED) AS x FROM seq_$from_to_$to)",
		[]string{"SET SESSION sql_mode = 'PIPES_AS_CONCAT'", "SET GLOBAL innodb_flush_log_at_trx_commit = 2"}},
}

// say completes a statement.
func (d *database) say(text string, rows, from, to int) string {
	for range 3 { // expressions have expressions
		for name, expression := range expressions {
			text = strings.ReplaceAll(text, "$"+name, "("+expression+")")
		}
	}
	in := dialects[d.name]
	text = strings.NewReplacer("$rows", fmt.Sprint(rows), "$jobs", fmt.Sprint(rows/steps), "$living", fmt.Sprint(min(living, rows/steps/10)),
		"$series", strings.NewReplacer("$from", fmt.Sprint(from), "$to", fmt.Sprint(to)).Replace(in.series), " / ", " "+strings.TrimSpace(in.divided)+" ").Replace(text)
	for { // $STR(…), from the innermost
		i := strings.LastIndex(text, "$STR(")
		if i < 0 {
			return text
		}
		inner, depth, end := text[i+5:], 1, 0
		for ; depth > 0; end++ {
			switch inner[end] {
			case '(':
				depth++
			case ')':
				depth--
			}
		}
		text = text[:i] + fmt.Sprintf(in.str, inner[:end-1]) + inner[end:]
	}
}

// fill writes transitions and their jobs into a log of an empty database with a schema.
func (d *database) fill(ctx context.Context, log int64, rows int) (err error) {
	conn, err := d.db.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	exec := func(text string) error {
		if _, err := conn.ExecContext(ctx, text); err != nil {
			return fmt.Errorf("%w: %s", err, text)
		}
		return nil
	}
	for _, text := range dialects[d.name].before {
		if err := exec(text); err != nil {
			return err
		}
	}
	drops, makes, err := d.indexes(ctx, conn)
	if err != nil {
		return err
	}
	for _, text := range drops {
		if err := exec(text); err != nil {
			return err
		}
	}
	const piece = 500_000 // so that no transaction becomes too large
	for from := 0; from < rows; from += piece {
		text := fmt.Sprintf(`INSERT INTO transitions (log, seq, uid, namespace, name, version, from_state, to_state, at, observed, late, attempt, reason, message, owner, queue)
			SELECT %d, i, $uid, $namespace, $called, i + 1000, CASE k WHEN 0 THEN '' WHEN 1 THEN 'Submitted' WHEN 2 THEN $second WHEN 3 THEN 'Running' ELSE $end END,
			CASE k WHEN 0 THEN 'Submitted' WHEN 1 THEN $second WHEN 2 THEN 'Running' WHEN 3 THEN $end ELSE $last END, %s, %s, 0, 1,
			'BackoffLimitExceeded', 'Job has reached the specified backoff limit', $owner, $queue
			FROM (SELECT x + 1 AS i, x / %d * %d + x %% %d AS j, x %% %d / %d AS k FROM $series AS s) AS numbered`, log, at("i"), at("i"), block, abreast, abreast, block, abreast)
		if err := exec(d.say(text, rows, from, min(from+piece, rows)-1)); err != nil {
			return err
		}
	}
	const span = 1000 // transitions, as the gateway has it
	if rows >= span {
		text := fmt.Sprintf("INSERT INTO spans (log, block, least, most) SELECT %d, x, %s, %s FROM $series AS s", log, at(fmt.Sprintf("x * %d + 1", span)), at(fmt.Sprintf("(x + 1) * %d", span)))
		if err := exec(d.say(text, rows, 0, rows/span-1)); err != nil {
			return err
		}
	}
	jobs := rows / steps
	for from := 0; from < jobs; from += piece {
		first := fmt.Sprintf("j / %d * %d + j %% %d + 1", abreast, block, abreast)
		text := fmt.Sprintf(`INSERT INTO jobs (log, uid, namespace, name, owner, queue, state, since, reason, message, attempt, version, created, started, ended, deleted, spent, requests, ran_until, lived)
			SELECT %d, $uid, $namespace, $called, $owner, $queue, $last, %s, 'BackoffLimitExceeded', 'Job has reached the specified backoff limit', 1, %s + 5000,
			%s / 1000 * 1000, %s, %s, CASE WHEN $last = 'Deleted' THEN %s ELSE 0 END, '{"Pending":1000,"Running":' || $STR(%s - %s) || '}',
			'{"cpu":"8","memory":"64Gi","nvidia.com/gpu":"2"}', %s, %d
			FROM (SELECT x AS j FROM $series AS s) AS numbered`, log, at(first+" + 4000"), first, at(first), at(first+" + 2000"), at(first+" + 3000"), at(first+" + 4000"),
			at(first+" + 3000"), at(first+" + 2000"), at(first+" + 3000"), bits.Len64(uint64(4000*period/rows/1000)))
		if err := exec(d.say(text, rows, from, min(from+piece, jobs)-1)); err != nil {
			return err
		}
	}
	for _, text := range append(makes, fmt.Sprintf("UPDATE logs SET seq = %d, version = %d", rows, rows+1000)) {
		if err := exec(text); err != nil {
			return err
		}
	}
	if d.name == "mysql" {
		return errors.Join(exec("ANALYZE TABLE jobs, transitions"), exec("SET GLOBAL innodb_flush_log_at_trx_commit = 1"))
	}
	if d.name == "postgres" {
		return errors.Join(exec("VACUUM ANALYZE"), exec("CHECKPOINT")) // as autovacuum does sooner or later
	}
	return exec("PRAGMA journal_mode = WAL")
}

// indexes are statements that drop, and that make again, all indexes but the primary keys: to make
// them at the end is much faster.
func (d *database) indexes(ctx context.Context, conn *sql.Conn) (drops, makes []string, err error) {
	rows, err := conn.QueryContext(ctx, map[string]string{
		"sqlite":   "SELECT 'DROP INDEX ' || name, sql FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL",
		"postgres": "SELECT 'DROP INDEX ' || indexname, indexdef FROM pg_indexes WHERE tablename IN ('jobs', 'transitions') AND indexname NOT LIKE '%pkey'",
		"mysql": `SELECT CONCAT('DROP INDEX ', index_name, ' ON ', table_name), CONCAT('CREATE INDEX ', index_name, ' ON ', table_name, '(', GROUP_CONCAT(column_name ORDER BY seq_in_index), ')')
			FROM information_schema.statistics WHERE table_schema = DATABASE() AND table_name IN ('jobs', 'transitions') AND index_name <> 'PRIMARY' GROUP BY table_name, index_name`,
	}[d.name])
	if err != nil {
		return nil, nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var one, other string
		if err := rows.Scan(&one, &other); err != nil {
			return nil, nil, err
		}
		drops, makes = append(drops, one), append(makes, other)
	}
	return drops, makes, rows.Err()
}
