// Command mutate shows what the tests would not see. It changes a line of a package where users share something, runs
// that package's tests, and reports whether one fails. Nothing is written into the tree: the go command is given the
// changed file as an overlay. The same seed makes the same changes.
//
//	go run ./scripts/mutate                                     # some 200, overnight
//	go run ./scripts/mutate -packages http/access,auth -n 20    # a few
//	go run ./scripts/mutate -results mutations.tsv              # goes on where an earlier run has ended
//
// A change that no test sees means that a test is missing, that the code does nothing, or that the change makes no
// difference. The last are listed with their reasons in equivalent.txt, and are not made.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
)

func main() {
	log.SetFlags(0)
	only := flag.String("packages", "", "the packages, below internal and with commas between; empty: all where users meet")
	n := flag.Int("n", 200, "how many changes, shared out among the packages by their sizes")
	seed := flag.Uint64("seed", 1, "which changes these are")
	own := flag.Bool("own", false, "only the package's own tests, and not those of internal/http for what they let pass")
	results := flag.String("results", "", "a file that gets a line for each change; changes that it has already are not tried again")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *only, *n, *seed, *own, *results); err != nil {
		log.Fatal("mutate: ", err)
	}
}

// run tries mutations in the repository whose root is the working directory.
func run(ctx context.Context, only string, n int, seed uint64, own bool, results string) error {
	packages, err := choose(only, seed)
	if err != nil {
		return err
	}
	report, err := openReport(results)
	if err != nil {
		return err
	}
	defer report.close()
	scratch, err := os.MkdirTemp("", "mutate")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)
	all := 0
	for _, p := range packages {
		all += len(p.mutations)
	}
	for _, p := range packages {
		suites := []*suite{{directory: p.directory, scratch: scratch}}
		if p.through != "" && !own {
			suites = append(suites, &suite{directory: "internal/http", only: p.through, scratch: scratch})
		}
		wanted := max(1, (n*len(p.mutations)+all/2)/all)
		if err := try(ctx, p.mutations, wanted, suites, report); err != nil {
			return err
		}
	}
	report.table()
	return ctx.Err()
}

// try makes as many mutations as are wanted. Those that do not compile are not counted.
func try(ctx context.Context, mutations []mutation, wanted int, suites []*suite, report *report) error {
	for _, m := range mutations {
		if wanted == 0 {
			return nil
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if is, known := report.known[m.name()]; known {
			report.count(m, is)
			if is.state != uncompiled {
				wanted--
			}
			continue
		}
		is := outcome{state: survived}
		for _, s := range suites {
			var err error
			if is, err = s.run(ctx, m); err != nil {
				return fmt.Errorf("%s: %w", m.name(), err)
			}
			if is.state != survived {
				break
			}
		}
		if err := report.add(m, is); err != nil {
			return err
		}
		if is.state != uncompiled {
			wanted--
		}
	}
	return nil
}
