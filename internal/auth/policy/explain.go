package policy

import (
	"context"
	"fmt"

	"cel.dev/cel-go/common/types"

	"github.com/kubecast/kubecast/internal/auth"
)

// Explain says what each policy says of a request. One that depends on the namespace or the name permits what Scope
// says.
func (a *Authorizer) Explain(_ context.Context, id auth.Identity, req auth.Request) (why auth.Explanation, err error) {
	if req.Path != "" {
		if !id.Anonymous {
			why.By = []string{"policies do not count for URLs that are not resources: whoever is signed in may read them"}
		}
		return why, nil
	}
	input, err := inputOf(&id, &req)
	if err != nil {
		return why, err
	}
	for _, p := range a.policies {
		value, _, err := p.program.Eval(input)
		switch {
		case err != nil:
			why.Hints = append(why.Hints, fmt.Sprintf("%s fails: %v", p.name, err))
		case value == types.True:
			why.By = append(why.By, p.name)
		case types.IsUnknown(value):
			why.Hints = append(why.Hints, p.name+" depends on the namespace or the name")
		default:
			why.Hints = append(why.Hints, p.name+" does not permit it")
		}
	}
	return why, nil
}
