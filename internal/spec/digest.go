package spec

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// digestNode hashes a canonical form of the tree: keys sorted, each scalar as
// its type and text. Comments, quotes and layout are not in it.
func digestNode(n *yaml.Node) string {
	var b strings.Builder
	canonical(&b, n)
	sum := sha256.Sum256([]byte(b.String()))
	return hex.EncodeToString(sum[:])
}

func canonical(w *strings.Builder, n *yaml.Node) {
	switch n.Kind {
	case yaml.MappingNode:
		order := make([]int, 0, len(n.Content)/2)
		for i := 0; i+1 < len(n.Content); i += 2 {
			order = append(order, i)
		}
		slices.SortStableFunc(order, func(a, b int) int {
			return strings.Compare(n.Content[a].Value, n.Content[b].Value)
		})
		w.WriteString("{")
		for _, i := range order {
			canonical(w, n.Content[i])
			canonical(w, n.Content[i+1])
		}
		w.WriteString("}")
	case yaml.SequenceNode:
		w.WriteString("[")
		for _, c := range n.Content {
			canonical(w, c)
		}
		w.WriteString("]")
	default:
		w.WriteString(n.ShortTag() + strconv.Quote(n.Value))
	}
}

// digestOf hashes digests in sorted order, each once.
func digestOf(digests []string) string {
	sorted := slices.Compact(slices.Sorted(slices.Values(digests)))
	sum := sha256.Sum256([]byte(strings.Join(sorted, "\n")))
	return hex.EncodeToString(sum[:])
}
