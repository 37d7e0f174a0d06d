package main

import (
	"fmt"
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// mutation is one small change of a file: what stands from one offset to another is replaced.
type mutation struct {
	kind     string // of change
	file     string // below the root
	line     int
	function string
	from, to int
	before   string
	after    string
	again    int // how many like it there are before it in its function
}

// name identifies a mutation, for as long as its function does not change there.
func (m mutation) name() string {
	name := fmt.Sprintf("%s %s `%s` → `%s`", m.file, m.function, short(m.before), short(m.after))
	if m.again > 0 {
		name += " #" + strconv.Itoa(m.again+1)
	}
	return name
}

var space = regexp.MustCompile(`\s+`)

// short is a piece of code in one line.
func short(code string) string {
	const most = 80
	line := []rune(space.ReplaceAllString(strings.TrimSpace(code), " "))
	if len(line) > most {
		line = append(line[:most-1], '…')
	}
	return string(line)
}

// zero is the function that mutated files have beside their own, so that a value can be left out whatever its type is.
const zero = "\nfunc mutatedZero[T any](T) (zero T) { return zero }\n"

// apply returns the text of a file with the mutation in it.
func (m mutation) apply(text string) string {
	return text[:m.from] + m.after + text[m.to:] + zero
}

// mutationsOf returns all mutations of a package, in the order of its files.
func mutationsOf(directory string) ([]mutation, error) {
	found, err := build.ImportDir(directory, 0)
	if err != nil {
		return nil, err
	}
	var all []mutation
	for _, name := range found.GoFiles {
		text, err := os.ReadFile(filepath.Join(directory, name))
		if err != nil {
			return nil, err
		}
		ofFile, err := mutationsIn(path.Join(directory, name), string(text))
		if err != nil {
			return nil, err
		}
		all = append(all, ofFile...)
	}
	return all, nil
}

// mutationsIn returns the mutations of one file.
func mutationsIn(file, text string) ([]mutation, error) {
	set := token.NewFileSet()
	parsed, err := parser.ParseFile(set, file, text, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	w := &walker{set: set, file: file, text: text, seen: map[string]int{}}
	for _, d := range parsed.Decls {
		if f, is := d.(*ast.FuncDecl); is && f.Body != nil {
			w.function, w.fails = nameOf(f), fails(f.Type)
			ast.Inspect(f.Body, w.visit)
		}
	}
	return w.found, nil
}

func nameOf(f *ast.FuncDecl) string {
	if f.Recv == nil {
		return f.Name.Name
	}
	receiver := f.Recv.List[0].Type
	if star, is := receiver.(*ast.StarExpr); is {
		receiver = star.X
	}
	if of, is := receiver.(*ast.IndexExpr); is {
		receiver = of.X
	}
	if of, is := receiver.(*ast.Ident); is {
		return of.Name + "." + f.Name.Name
	}
	return f.Name.Name
}

// fails reports whether a function's last result is an error.
func fails(f *ast.FuncType) bool {
	if f.Results == nil {
		return false
	}
	last, is := f.Results.List[len(f.Results.List)-1].Type.(*ast.Ident)
	return is && last.Name == "error"
}

// walker finds the mutations of one function after the other.
type walker struct {
	set      *token.FileSet
	file     string
	text     string
	function string
	fails    bool // the function that is walked through returns an error
	seen     map[string]int
	found    []mutation
}

func (w *walker) code(n ast.Node) string {
	return w.text[w.set.Position(n.Pos()).Offset:w.set.Position(n.End()).Offset]
}

// add notes that a node may be replaced.
func (w *walker) add(kind string, n ast.Node, after string) {
	at := w.set.Position(n.Pos())
	m := mutation{
		kind: kind, file: w.file, line: at.Line, function: w.function, from: at.Offset, to: w.set.Position(n.End()).Offset,
		before: w.code(n), after: after,
	}
	m.again = w.seen[m.name()]
	w.seen[m.name()]++
	w.found = append(w.found, m)
}

// unimportant are calls that may be left out without harm to anybody: what is only logged or measured, and locks, whose
// absence only the race detector sees.
var unimportant = regexp.MustCompile(`(^|\.)(Lock|Unlock|RLock|RUnlock|Inc|Dec|Observe|WithLabelValues|Debug|Info|Warn|Error|Done|Close)\(|metrics\.|log\.|logger\(`)

// other is what a comparison or a connection becomes.
var other = map[token.Token]token.Token{
	token.LSS: token.LEQ, token.LEQ: token.LSS, token.GTR: token.GEQ, token.GEQ: token.GTR, token.EQL: token.NEQ, token.NEQ: token.EQL,
	token.ADD: token.SUB, token.SUB: token.ADD,
}

// visit is for ast.Inspect.
func (w *walker) visit(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.FuncLit:
		outer := w.fails
		w.fails = fails(n.Type)
		ast.Inspect(n.Body, w.visit)
		w.fails = outer
		return false
	case *ast.IfStmt:
		w.add("condition", n.Cond, "!("+w.code(n.Cond)+")")
	case *ast.SwitchStmt:
		w.cases(n)
	case *ast.BinaryExpr:
		w.binary(n)
	case *ast.ExprStmt, *ast.IncDecStmt, *ast.AssignStmt, *ast.BranchStmt, *ast.SendStmt:
		w.statement(n.(ast.Stmt))
	case *ast.ReturnStmt:
		w.result(n)
	case *ast.CompositeLit:
		w.literal(n)
	case *ast.CallExpr:
		for _, argument := range n.Args {
			w.value("argument", argument)
		}
	case *ast.BasicLit:
		if number, err := strconv.Atoi(n.Value); n.Kind == token.INT && err == nil {
			w.add("constant", n, strconv.Itoa(number+1))
		}
	case *ast.Ident:
		if after, is := map[string]string{"true": "false", "false": "true"}[n.Name]; is {
			w.add("constant", n, after)
		}
	}
	return true
}

// cases negates the conditions of a switch that switches on nothing.
func (w *walker) cases(n *ast.SwitchStmt) {
	if n.Tag != nil {
		return
	}
	for _, clause := range n.Body.List {
		for _, condition := range clause.(*ast.CaseClause).List {
			w.add("condition", condition, "!("+w.code(condition)+")")
		}
	}
}

func (w *walker) binary(n *ast.BinaryExpr) {
	switch n.Op {
	case token.LAND, token.LOR: // as if one of both were not asked
		w.add("operand", n, w.code(n.X))
		w.add("operand", n, w.code(n.Y))
	default:
		if to, is := other[n.Op]; is {
			w.add("comparison", n, w.code(n.X)+" "+to.String()+" "+w.code(n.Y))
		}
	}
}

// statement leaves a statement out. It stays in the text, so that nothing of what it uses is unused.
func (w *walker) statement(n ast.Stmt) {
	code := w.code(n)
	if assign, is := n.(*ast.AssignStmt); is && assign.Tok == token.DEFINE || unimportant.MatchString(code) {
		return
	}
	w.add("statement", n, "if false { "+code+" }")
}

// result has a function return something else.
func (w *walker) result(n *ast.ReturnStmt) {
	for i, value := range n.Results {
		if w.fails && i == len(n.Results)-1 {
			if w.code(value) != "nil" {
				w.add("error", value, "nil")
			}
			continue
		}
		w.value("result", value)
	}
}

// literal leaves the parts of a composite literal out.
func (w *walker) literal(n *ast.CompositeLit) {
	for _, element := range n.Elts {
		if pair, is := element.(*ast.KeyValueExpr); is {
			element = pair.Value
		}
		w.value("part", element)
	}
}

// value replaces a value by the zero of its type.
func (w *walker) value(kind string, n ast.Expr) {
	switch n := n.(type) {
	case *ast.Ident:
		if n.Name == "nil" || n.Name == "true" || n.Name == "false" {
			return
		}
	case *ast.BasicLit, *ast.FuncLit, *ast.ArrayType, *ast.MapType, *ast.CompositeLit, *ast.UnaryExpr:
		return
	}
	w.add(kind, n, "mutatedZero("+w.code(n)+")")
}
