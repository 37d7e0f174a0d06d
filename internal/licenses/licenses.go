// Package licenses carries the licenses and notices of everything that is inside the gateway's binary. Most of them ask
// that whoever hands the binary on hands them on, too.
package licenses

import _ "embed"

// Notices is a text that names each part with its version, and each license once behind the parts that are under it.
// `make docs` writes it (scripts/notices).
//
//go:embed notices.txt
var Notices string
