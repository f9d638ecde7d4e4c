package signature_test

// Secrets of these tests. The private key is the published pair of Svix's tests.
const (
	stripeSecret   = "whsec_TESTONLY_signature"
	standardSecret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	privateSecret  = "whsk_6Xb/dCcHpPea21PS1N9VY/NZW723CEc77N4rJCubMbfVKIDij2HKpMKkioLlX0dRqSKJp4AJ6p9lMicMFs6Kvg=="
	publicSecret   = "whpk_1SiA4o9hyqTCpIqC5V9HUakiiaeACeqfZTInDBbOir4="
	adyenSecret    = "DFB1EB5485895CFA84146406857104ABB4CBCABDC8AAF103A624C8F6A3EAAB00"
)

const adyenBody = `{"live":"true","notificationItems":[{"NotificationRequestItem":{` +
	`"additionalData":{"expiryDate":"12\/2012"},"amount":{"currency":"EUR","value":5000},` +
	`"eventCode":"AUTHORISATION","eventDate":"2026-09-21T10:00:00+02:00","merchantAccountCode":"TestShopECOM",` +
	`"merchantReference":"ord_1","pspReference":"PSP1","success":"true"}}]}`
