package rules

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
	"cel.dev/cel-go/ext"
	"cel.dev/cel-go/interpreter"
	"k8s.io/apimachinery/pkg/util/json" // it reads whole numbers as integers, as Kubernetes' own expressions do

	"github.com/kubecast/kubecast/internal/cluster"
	"github.com/kubecast/kubecast/internal/jobs"
)

// costLimit bounds one evaluation in CEL's units, which takes some milliseconds at most. A comparison is one unit.
const costLimit = 100_000

type environment struct{ cel *cel.Env }

func newEnvironment() (environment, error) {
	env, err := cel.NewEnv(
		cel.Variable("object", cel.DynType),
		cel.Variable("state", cel.StringType),
		cel.OptionalTypes(),
		ext.Strings(),
		cel.Function("condition", cel.MemberOverload("object_condition", []*cel.Type{cel.DynType, cel.StringType},
			cel.MapType(cel.StringType, cel.StringType), cel.BinaryBinding(condition))),
	)
	return environment{env}, err
}

// expression is a CEL expression whose result is a text.
type expression struct {
	program cel.Program
	ast     *cel.Ast
}

// compile returns nil for an empty text.
func (e environment) compile(text string) (*expression, error) {
	if text == "" {
		return nil, nil
	}
	checked, issues := e.cel.Compile(text)
	if err := issues.Err(); err != nil {
		return nil, fmt.Errorf("%s", strings.TrimSpace(err.Error()))
	}
	if t := checked.OutputType(); !t.IsExactType(cel.StringType) && !t.IsExactType(cel.DynType) {
		return nil, fmt.Errorf("%q gives %s, not a string", text, t)
	}
	program, err := e.cel.Program(checked, cel.EvalOptions(cel.OptOptimize), cel.CostLimit(costLimit), cel.CostTracking(conditionCost{}))
	if err != nil {
		return nil, err
	}
	return &expression{program: program, ast: checked}, nil
}

// checkStates finds misspelled states among the texts that may be results.
func (e *expression) checkStates() error {
	var errs []error
	var check func(ast.Expr)
	check = func(expr ast.Expr) {
		switch expr.Kind() {
		case ast.CallKind:
			if call := expr.AsCall(); call.FunctionName() == operators.Conditional {
				check(call.Args()[1])
				check(call.Args()[2])
			}
		case ast.LiteralKind:
			text, ok := expr.AsLiteral().(types.String)
			if state := jobs.State(text); ok && state != "" && (!state.Valid() || state == jobs.Deleted) {
				errs = append(errs, fmt.Errorf("%q is no state; known are %v, and '' for none; that it is Deleted no object says", string(state), saidStates()))
			}
		}
	}
	check(e.ast.NativeRep().Expr())
	return errors.Join(errs...)
}

// saidStates are the states that an object can say.
func saidStates() []jobs.State {
	return slices.DeleteFunc(jobs.States(), func(s jobs.State) bool { return s == jobs.Deleted })
}

// input is what an expression sees.
type input struct {
	object map[string]any
	state  string
}

// parse returns an object as expressions see it.
func parse(o *cluster.Object) map[string]any {
	object := map[string]any{}
	_ = json.Unmarshal([]byte(o.JSON()), &object) // cannot fail: it is an object
	withoutNulls(object)
	return object
}

// withoutNulls changes objects in place.
func withoutNulls(value any) any {
	switch v := value.(type) {
	case map[string]any:
		for key, member := range v {
			if member == nil {
				delete(v, key)
			} else {
				v[key] = withoutNulls(member)
			}
		}
	case []any:
		kept := v[:0]
		for _, element := range v {
			if element != nil {
				kept = append(kept, withoutNulls(element))
			}
		}
		return kept
	}
	return value
}

func (in input) ResolveName(name string) (any, bool) {
	switch name {
	case "object":
		return in.object, true
	case "state":
		return in.state, true
	}
	return nil, false
}

func (in input) Parent() interpreter.Activation { return nil }

func (e *expression) evaluate(in input) (string, error) {
	value, _, err := e.program.Eval(in)
	if err != nil {
		return "", err
	}
	text, ok := value.(types.String)
	if !ok {
		return "", fmt.Errorf("it is of type %s, not a string", value.Type().TypeName())
	}
	return string(text), nil
}

// conditionsOf is an object's list of conditions, as CEL holds it; nil if it has none.
func conditionsOf(object ref.Val) traits.Lister {
	for _, member := range []types.String{"status", "conditions"} {
		mapper, ok := object.(traits.Mapper)
		if !ok {
			return nil
		}
		if object, ok = mapper.Find(member); !ok {
			return nil
		}
	}
	list, _ := object.(traits.Lister)
	return list
}

// condition is object.condition(type).
func condition(object, wanted ref.Val) ref.Val {
	found := map[string]string{"type": string(wanted.(types.String)), "status": "", "reason": "", "message": "", "lastTransitionTime": ""}
	if list := conditionsOf(object); list != nil {
		for it := list.Iterator(); it.HasNext() == types.True; {
			mapper, ok := it.Next().(traits.Mapper)
			if !ok {
				continue
			}
			if is, ok := mapper.Find(types.String("type")); !ok || is.Equal(wanted) != types.True {
				continue
			}
			for name := range found {
				if text, ok := mapper.Find(types.String(name)); ok {
					if text, ok := text.(types.String); ok {
						found[name] = string(text)
					}
				}
			}
			break
		}
	}
	return types.DefaultTypeAdapter.NativeToValue(found)
}

// conditionCost makes the search for a condition cost as much as there are conditions.
type conditionCost struct{}

func (conditionCost) CallCost(function, _ string, args []ref.Val, _ ref.Val) *uint64 {
	if function != "condition" {
		return nil
	}
	n := uint64(1)
	if list := conditionsOf(args[0]); list != nil {
		if size, ok := list.Size().(types.Int); ok {
			n += uint64(size)
		}
	}
	return &n
}
