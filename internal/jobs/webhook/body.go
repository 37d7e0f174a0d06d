package webhook

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/ext"
	"google.golang.org/protobuf/types/known/structpb"
)

const (
	// bodyCost bounds the evaluation of a body in CEL's units. A digest of 1,000 transitions can be
	// walked several times.
	bodyCost = 1_000_000
	// bodyMost bounds a body in bytes.
	bodyMost = 1 << 20
	// linesMost is how many transitions lines() tells; of the others it tells how many they are.
	linesMost = 20
	// lineMost bounds each of them in characters.
	lineMost = 300
)

// readyMade are the bodies that have names. Each chat's own text has markup, so what jobs say is either escaped or
// stands where no markup is read.
var readyMade = map[string]string{
	"slack":      `{"text": slack(lines(event).join("\n")), "mrkdwn": false}`,
	"mattermost": `{"text": lines(event).map(line, markdown(line)).join("  \n")}`,
	"teams": `{"type": "message", "attachments": [{"contentType": "application/vnd.microsoft.card.adaptive", "content": {
		"$schema": "http://adaptivecards.io/schemas/adaptive-card.json", "type": "AdaptiveCard", "version": "1.4",
		"body": lines(event).map(line, {"type": "RichTextBlock", "inlines": [{"type": "TextRun", "text": line}]})}}]}`,
}

// body makes what is sent of an event, in JSON.
type body struct{ program cel.Program }

// newBody returns nil for an empty text: then the event itself is sent.
func newBody(text string) (*body, error) {
	if text == "" {
		return nil, nil
	}
	if made, ok := readyMade[text]; ok {
		text = made
	}
	env, err := cel.NewEnv(
		cel.Variable("event", cel.MapType(cel.StringType, cel.DynType)),
		cel.OptionalTypes(), ext.Strings(), ext.Lists(), ext.Math(),
		ofText("slack", escapeSlack), ofText("markdown", escapeMarkdown),
		cel.Function("lines", cel.Overload("lines_event", []*cel.Type{cel.MapType(cel.StringType, cel.DynType)}, cel.ListType(cel.StringType), cel.UnaryBinding(lines))),
	)
	if err != nil {
		return nil, err
	}
	checked, issues := env.Compile(text)
	if err := issues.Err(); err != nil {
		return nil, errors.New(strings.TrimSpace(err.Error()))
	}
	switch kind := checked.OutputType().Kind(); kind {
	case types.MapKind, types.ListKind, types.StringKind, types.DynKind:
	default:
		return nil, fmt.Errorf("gives %s, not a map, list or string", checked.OutputType())
	}
	program, err := env.Program(checked, cel.EvalOptions(cel.OptOptimize), cel.CostLimit(bodyCost))
	if err != nil {
		return nil, err
	}
	return &body{program}, nil
}

// make returns the JSON for an event. Whatever texts have in them, they stay texts: the JSON is made after the
// expression, not by it.
func (b *body) make(event cloudEvent) ([]byte, error) {
	text, err := json.Marshal(event)
	if err != nil {
		return nil, err
	}
	var input map[string]any
	if err := json.Unmarshal(text, &input); err != nil {
		return nil, err
	}
	value, _, err := b.program.Eval(map[string]any{"event": input})
	if err != nil {
		return nil, fmt.Errorf("the body cannot be made: %w", err)
	}
	switch value.Type() {
	case types.MapType, types.ListType, types.StringType:
	default:
		return nil, fmt.Errorf("the body would be of type %s", value.Type().TypeName())
	}
	native, err := value.ConvertToNative(reflect.TypeFor[*structpb.Value]())
	if err != nil {
		return nil, fmt.Errorf("the body cannot be made: %w", err)
	}
	made, err := json.Marshal(native.(*structpb.Value).AsInterface())
	if err == nil && len(made) > bodyMost {
		err = fmt.Errorf("the body would have %d bytes", len(made))
	}
	return made, err
}

func ofText(name string, do func(string) string) cel.EnvOption {
	return cel.Function(name, cel.Overload(name+"_string", []*cel.Type{cel.StringType}, cel.StringType, cel.UnaryBinding(func(v ref.Val) ref.Val {
		return types.String(do(string(v.(types.String))))
	})))
}

// escapeSlack escapes what Slack reads as markup in any text, by which one could also call everybody.
func escapeSlack(text string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(text)
}

// escapeMarkdown escapes all that Markdown may read as markup, and keeps chats from finding names after an @.
func escapeMarkdown(text string) string {
	var b strings.Builder
	for _, r := range text {
		switch {
		case r == '\n' || r == '\r':
			r = ' '
		case r == '@':
			b.WriteString("@\u200b")
			continue
		case strings.ContainsRune("\\`*_{}[]()<>#+-.!|~:&\"'$^=/", r):
			b.WriteByte('\\')
		}
		b.WriteRune(r)
	}
	return b.String()
}

// lines is lines(event): a line for each transition, as people read it.
func lines(event ref.Val) ref.Val {
	native, err := event.ConvertToNative(reflect.TypeFor[*structpb.Value]())
	if err != nil {
		return types.NewErr("lines: %v", err)
	}
	data := native.(*structpb.Value).GetStructValue().GetFields()["data"].GetStructValue().GetFields()
	all := data["transitions"].GetListValue().GetValues()
	if one, ok := data["transition"]; ok {
		all = []*structpb.Value{structpb.NewStructValue(&structpb.Struct{Fields: map[string]*structpb.Value{"transition": one}})}
	}
	var told []string
	for i, one := range all {
		if i == linesMost {
			told = append(told, fmt.Sprintf("… and %d more", len(all)-i))
			break
		}
		told = append(told, lineOf(one.GetStructValue().GetFields()["transition"].GetStructValue().GetFields()))
	}
	if len(all) == 0 {
		told = []string{"Kubecast: this is a test."}
	}
	return types.DefaultTypeAdapter.NativeToValue(told)
}

// lineOf is one transition: team-a/train: Failed: why, where that is known, else with what its controller says: Failed (BackoffLimitExceeded): the message.
func lineOf(transition map[string]*structpb.Value) string {
	of := func(field string) string { return transition[field].GetStringValue() }
	line := of("name") + ": " + of("to")
	if of("namespace") != "" {
		line = of("namespace") + "/" + line
	}
	if cause := transition["cause"].GetStructValue().GetFields()["text"].GetStringValue(); cause != "" {
		line += ": " + cause
	} else {
		if of("reason") != "" {
			line += " (" + of("reason") + ")"
		}
		if of("message") != "" {
			line += ": " + of("message")
		}
	}
	line = readable(line)
	if runes := []rune(line); len(runes) > lineMost {
		line = string(runes[:lineMost]) + "…"
	}
	return line
}
