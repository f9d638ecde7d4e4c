package cases

// Send and EndsWithin are what the tests of the wire need.
var (
	Send       = send
	EndsWithin = endsWithin
)
