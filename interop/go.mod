module github.com/paidonce/paidonce/interop

go 1.26.0

require (
	github.com/PaddleHQ/paddle-go-sdk/v4 v4.1.0
	github.com/paidonce/paidonce v0.0.0
	github.com/razorpay/razorpay-go v1.3.3
	github.com/standard-webhooks/standard-webhooks/libraries v0.0.1
	github.com/stretchr/testify v1.12.1
	github.com/stripe/stripe-go/v84 v84.4.1
	github.com/svix/svix-webhooks v1.44.0
)

require (
	github.com/bojanz/currency v1.5.1 // indirect
	github.com/cockroachdb/apd/v3 v3.2.3 // indirect
	github.com/ggicci/httpin v0.20.1 // indirect
	github.com/ggicci/owl v0.8.2 // indirect
	github.com/hashicorp/go-cleanhttp v0.5.2 // indirect
	github.com/tidwall/gjson v1.20.0 // indirect
	github.com/tidwall/match v1.2.0 // indirect
	github.com/tidwall/pretty v1.2.1 // indirect
	github.com/tidwall/sjson v1.2.5 // indirect
	go.yaml.in/yaml/v3 v3.0.6 // indirect
	gopkg.in/validator.v2 v2.0.1 // indirect
)

replace github.com/paidonce/paidonce => ../
