// Package e2e holds the tests of the whole program: serve and work as they are
// put together by internal/app, on a real Postgres, spoken to over HTTP.
//
//	go test ./e2e -run TestCases                       failure cases of testdata/cases
//	PAIDONCE_CASES=DIR go test ./e2e -run TestCases    those of another folder
//	go test ./e2e -run TestScenarios                   testdata/scenarios
//	go test ./e2e -run TestKillNine                    kill -9 at any moment
//
// Where a test kills, restarts or adds a process, the test binary runs itself
// again as serve or work; see [TestMain]. The clock and the dialer are injected
// there: the released program has no switch for them.
package e2e
