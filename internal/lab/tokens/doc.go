// Package tokens holds the tests of what a question to a model costs, counted by
// a public tokenizer: o200k_base, and cl100k_base beside it, whose vocabularies
// come with the module and need no network. Nothing that ships uses one. Models
// count differently; at run time the endpoint's own usage is what is recorded.
//
//	go test ./internal/lab/tokens -v
//
//	B11  -run Scenarios  tokens of a question of the shipped services with its answer, at most
//	                     3,000 whatever there is to tell; the first question of an episode
//	                     with a repair turn too; promptTokens holds by the tokenizer
//	     -run Episodes   the same of whole episodes, as the shipped cassettes hold them, by the
//	                     tokenizer and by the usage that was given at run time
//	     -run FleetSize  the same bytes, whether the fleet has one service or 2,000
//	     -run Estimate   our estimate against the tokenizer's count: never less
//	     -run Cut        a prompt that is cut to a limit is within it by the tokenizer
package tokens
